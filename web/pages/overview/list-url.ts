import { type Filter, urlOf } from "../events/filter.ts";

/** The URL of a list of exactly these events. */
export const listUrl = (filter: Partial<Filter>): string => urlOf({ ...filter, span: filter.from ? "custom" : "" });
