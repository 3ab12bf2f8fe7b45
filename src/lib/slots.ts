/** More than there ever are at a time; it leaves 2^33 turns to a number that is exact. */
const mostPlaces = 2 ** 20;

/**
 * Values that come and go with every event, by numbers that `Slots` gives.
 *
 * A `Map` whose keys come and go is rebuilt every few dozen of them, and the runtime's collector keeps each discarded table,
 * with what was in it then, until a full collection: at 4,000 events a second that is 4 MB more each time, five times a
 * second. Here places are reused.
 */
export class NumberedValues<Value> {
  private readonly values: (Value | undefined)[] = [];
  private readonly numbers: number[] = [];

  put(number: number, value: Value): void {
    const place = number % mostPlaces;
    while (this.values.length < place) {
      this.values.push(undefined);
      this.numbers.push(0);
    }
    this.values[place] = value;
    this.numbers[place] = number;
  }

  get(number: number): Value | undefined {
    const place = number % mostPlaces;
    return this.numbers[place] === number ? this.values[place] : undefined;
  }

  /** @returns whether it was there */
  delete(number: number): boolean {
    const place = number % mostPlaces;
    if (number === 0 || this.numbers[place] !== number) return false;
    this.values[place] = undefined;
    this.numbers[place] = 0;
    return true;
  }

  /** Removes and returns all of them. */
  takeAll(): Value[] {
    const taken: Value[] = [];
    for (const number of this.numbers) {
      const value = this.get(number);
      if (this.delete(number) && value !== undefined) taken.push(value);
    }
    return taken;
  }
}

/** Assigns the numbers; none is used twice. */
export class Slots<Value> extends NumberedValues<Value> {
  private readonly free: number[] = [];
  private places = 0;
  private turn = 0;

  /** @returns the number under which it is found */
  add(value: Value): number {
    const place = this.free.pop() ?? this.places++;
    this.turn += 1;
    const number = this.turn * mostPlaces + place;
    this.put(number, value);
    return number;
  }

  override delete(number: number): boolean {
    const wasThere = super.delete(number);
    if (wasThere) this.free.push(number % mostPlaces);
    return wasThere;
  }
}
