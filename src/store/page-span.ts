/** Where a page lies in a list that is walked along an index, from whichever end is nearer. */
export interface PagePlace {
  readonly offset: number;
  readonly limit: number;
  /** How many entries the list has, when that is known. */
  readonly total?: number | undefined;
}

/** How many rows are walked over to reach a page, from the nearer end when the total is known. */
export function walkedRows({ offset, limit, total }: PagePlace): number {
  return total === undefined ? offset : Math.min(offset, Math.max(0, total - offset - limit));
}

export interface PageSpan {
  readonly offset: number;
  readonly limit: number;
  /** The offset counts from the oldest entry, and the rows come out in reverse. */
  readonly fromOldest: boolean;
}

/** How the walk goes: from the newest, or, when the total is known and the page is nearer to it, from the oldest. */
export function spanOf(place: PagePlace): PageSpan {
  const { offset, limit, total } = place;
  if (total === undefined || offset >= total || walkedRows(place) >= offset)
    return { offset, limit, fromOldest: false };
  return {
    offset: Math.max(0, total - offset - limit),
    limit: Math.min(limit, total - offset),
    fromOldest: true,
  };
}
