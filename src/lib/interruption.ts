/** The part of an `AbortSignal` that is needed to be interrupted; any `AbortSignal` fits. */
export interface Interruption {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: InterruptionListener): void;
  removeEventListener(type: "abort", listener: InterruptionListener): void;
}

export interface InterruptionListener {
  handleEvent(): void;
}

/**
 * Interrupts many listeners that come and go. Adding a listener to a signal of the runtime and removing it again is 1 µs
 * of an attempt under full load, and more the more listeners there are.
 */
export class Interrupter implements Interruption {
  aborted = false;
  /** Few at a time; for why this is no `Set`, see `Slots`. */
  private readonly listeners: InterruptionListener[] = [];

  addEventListener(_type: "abort", listener: InterruptionListener): void {
    this.listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: InterruptionListener): void {
    const at = this.listeners.indexOf(listener);
    if (at !== -1) this.listeners.splice(at, 1);
  }

  /** Each listener is told once; one that is removed in the meantime is not. */
  abort(): void {
    if (this.aborted) return;
    this.aborted = true;
    for (let next = this.listeners.shift(); next; next = this.listeners.shift()) next.handleEvent();
  }
}
