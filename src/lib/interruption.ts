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
 * Breaks off many that come and go. To listen to a signal of the run-time and to leave it again is 1 µs of an attempt under full load,
 * and more the more listen.
 */
export class Interrupter implements Interruption {
  aborted = false;
  private readonly listeners = new Set<InterruptionListener>();

  addEventListener(_type: "abort", listener: InterruptionListener): void {
    this.listeners.add(listener);
  }

  removeEventListener(_type: "abort", listener: InterruptionListener): void {
    this.listeners.delete(listener);
  }

  /** Each listener is told once; one that leaves meanwhile is not. */
  abort(): void {
    if (this.aborted) return;
    this.aborted = true;
    for (const listener of this.listeners) listener.handleEvent();
    this.listeners.clear();
  }
}
