/** What one needs of an `AbortSignal` to be broken off: any that is one fits. */
export interface Interruption {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: InterruptionListener): void;
  removeEventListener(type: "abort", listener: InterruptionListener): void;
}

export interface InterruptionListener {
  handleEvent(): void;
}

/**
 * Breaks off many that come and go. To listen to a signal of the runtime and to leave it again is 1 µs of an attempt under full load,
 * and more the more listen.
 */
export class Interrupter implements Interruption {
  aborted = false;
  /** Few at a time; of why no `Set`, see `Slots`. */
  private readonly listeners: InterruptionListener[] = [];

  addEventListener(_type: "abort", listener: InterruptionListener): void {
    this.listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: InterruptionListener): void {
    const at = this.listeners.indexOf(listener);
    if (at !== -1) this.listeners.splice(at, 1);
  }

  /** Each listener is told once; one that leaves meanwhile is not. */
  abort(): void {
    if (this.aborted) return;
    this.aborted = true;
    for (let next = this.listeners.shift(); next; next = this.listeners.shift()) next.handleEvent();
  }
}
