/** How many places of taken values are kept before they are cut off. */
const mostTaken = 1_024;

/** First in, first out, at any length: an array of thousands would be moved each time its first element is taken. */
export class Queue<Value> {
  private values: Value[] = [];
  private front = 0;

  get length(): number {
    return this.values.length - this.front;
  }

  /** The next to be taken. */
  get first(): Value | undefined {
    return this.values[this.front];
  }

  add(value: Value): void {
    this.values.push(value);
  }

  /** To be taken next. */
  addFirst(value: Value): void {
    if (this.front === 0) this.values.unshift(value);
    else {
      this.front -= 1;
      this.values[this.front] = value;
    }
  }

  take(): Value | undefined {
    if (this.length === 0) return undefined;
    const value = this.values[this.front];
    this.front += 1;
    if (this.length === 0) {
      this.values.length = 0;
      this.front = 0;
    } else if (this.front > mostTaken && this.front * 2 > this.values.length) {
      this.values = this.values.slice(this.front);
      this.front = 0;
    }
    return value;
  }

  /** Does nothing if the value is not in it. */
  remove(value: Value): void {
    const at = this.values.indexOf(value, this.front);
    if (at !== -1) this.values.splice(at, 1);
  }

  reduce<Result>(step: (result: Result, value: Value) => Result, start: Result): Result {
    let result = start;
    for (let i = this.front; i < this.values.length; i += 1) result = step(result, this.values[i] as Value);
    return result;
  }
}
