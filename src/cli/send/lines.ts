/** One line of the input, without its line ending. */
export interface Line {
  /** From 1, as editors count. */
  readonly number: number;
  /** Null: the line is too long to be sent. */
  readonly bytes: Uint8Array | null;
}

/** Cuts bytes into lines as they come. */
export interface LineSplitter {
  /** Lines that this piece completes. They may share its memory. */
  push(piece: Uint8Array): Line[];
  /** Whatever follows the last line ending, at the end of the input. */
  end(): Line[];
}

const newline = 0x0a;

/** @param longest longer lines are discarded as they arrive, so that a file without line endings does not fill memory */
export function createLineSplitter(longest: number): LineSplitter {
  let number = 0;
  let begun: Uint8Array[] = [];
  let begunBytes = 0;

  function keep(part: Uint8Array): void {
    begunBytes += part.length;
    if (begunBytes > longest) begun = [];
    else if (part.length > 0) begun.push(part);
  }

  function complete(): Line {
    number += 1;
    const [only, ...more] = begun;
    const bytes = only === undefined || more.length > 0 ? Buffer.concat(begun) : only;
    const line = { number, bytes: begunBytes > longest ? null : bytes };
    begun = [];
    begunBytes = 0;
    return line;
  }

  return {
    push(piece) {
      const lines: Line[] = [];
      let from = 0;
      for (let at = piece.indexOf(newline); at >= 0; at = piece.indexOf(newline, from)) {
        keep(piece.subarray(from, at));
        lines.push(complete());
        from = at + 1;
      }
      keep(piece.subarray(from));
      return lines;
    },
    end: () => (begunBytes > 0 ? [complete()] : []),
  };
}

/** Nothing but JSON white space: such lines are skipped. */
export const isBlank = ({ bytes }: Line): boolean =>
  bytes?.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d) ?? false;
