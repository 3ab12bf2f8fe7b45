/** Things that wait for their time, the earliest first: a binary heap. A thing added twice comes out twice. */
export interface Timeline<T> {
  add(at: number, item: T): void;
  /** The earliest time; null when nothing waits. */
  nextAt(): number | null;
  /** Takes out the earliest thing if its time has come. */
  takeDue(now: number): { at: number; item: T } | null;
}

export function createTimeline<T>(): Timeline<T> {
  const heap: { at: number; item: T }[] = [];

  function rise(index: number): void {
    const entry = heap[index];
    while (entry && index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = heap[parentIndex];
      if (!parent || parent.at <= entry.at) break;
      heap[index] = parent;
      heap[parentIndex] = entry;
      index = parentIndex;
    }
  }

  function sink(): void {
    let index = 0;
    const entry = heap[0];
    while (entry) {
      const left = 2 * index + 1;
      const right = left + 1;
      const smaller = (heap[right]?.at ?? Infinity) < (heap[left]?.at ?? Infinity) ? right : left;
      const child = heap[smaller];
      if (!child || child.at >= entry.at) break;
      heap[index] = child;
      heap[smaller] = entry;
      index = smaller;
    }
  }

  return {
    add(at, item) {
      heap.push({ at, item });
      rise(heap.length - 1);
    },
    nextAt: () => heap[0]?.at ?? null,
    takeDue(now) {
      const first = heap[0];
      if (!first || first.at > now) return null;
      const last = heap.pop();
      if (last && last !== first) {
        heap[0] = last;
        sink();
      }
      return first;
    },
  };
}
