/** Words go to standard output, or, when that carries JSON, to standard error; progress is for terminals only. */
let words: NodeJS.WriteStream = process.stdout;

export function sayOnStandardError(): void {
  words = process.stderr;
}

export function say(line: string): void {
  clearProgress();
  words.write(`${line}\n`);
}

let isProgressShown = false;

export function showProgress(text: string): void {
  if (!process.stderr.isTTY) return;
  isProgressShown = true;
  process.stderr.write(`\r\x1b[2K${text.slice(0, (process.stderr.columns ?? 80) - 1)}`);
}

export function clearProgress(): void {
  if (isProgressShown) process.stderr.write("\r\x1b[2K");
  isProgressShown = false;
}
