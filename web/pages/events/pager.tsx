import { keptInWords } from "../../format/kept.ts";
import { count } from "../../format/number.ts";
import { exactTime } from "../../format/time.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { account } from "../../session/account.ts";
import { type Filter, pageSize, urlOf } from "./filter.ts";
import type { Listed } from "./record.ts";
import { deliveriesInWords } from "./record.ts";

/** The part that a search has not covered yet. */
export const SearchFurther = ({ filter, searchedTo }: { filter: Filter; searchedTo: string }) => (
  <LinkButton href={urlOf({ ...filter, page: 1, until: searchedTo })}>Search further</LinkButton>
);

/** Rows are deliveries: one event has one for each webhook that receives it. */
function totalInWords({ total, totalIsExact, searchedTo }: Listed): string {
  if (searchedTo !== null) return `${deliveriesInWords(total)} found so far`;
  return totalIsExact ? deliveriesInWords(total) : `more than ${deliveriesInWords(total)}`;
}

/**
 * The position in the list, with links to the pages before and after. They share one end time, so that they do not shift.
 */
export function Pager({ filter, listed }: { filter: Filter; listed: Listed }) {
  const { records, total, totalIsExact, totalEvents, searchedTo } = listed;
  const before = (filter.page - 1) * pageSize;
  const end = before + records.length;
  const hasNext = records.length === pageSize && (!totalIsExact || end < total);
  const until = filter.until || listed.held;
  const who = account.value;
  return (
    <nav class="pager" aria-label="Pages">
      <p class="soft">
        {records.length > 0 && `${count(before + 1)}–${count(end)} of `}
        {totalInWords(listed)}
        {totalEvents !== null && totalEvents !== total && ` of ${count(totalEvents)} events`}
        {!hasNext && who !== null && (who.retention_payloads_seconds !== null || who.retention_by_size) && (
          <span class="small"> · {keptInWords(who)}</span>
        )}
        {!hasNext && searchedTo !== null && (
          <>
            {", "}
            <span class="nowrap">searched back to {exactTime(Date.parse(searchedTo))}</span>
          </>
        )}
        {filter.until !== "" && (
          <>
            {" "}
            <span class="nowrap">up to {exactTime(Date.parse(filter.until))}</span>
          </>
        )}
      </p>
      <div class="buttons">
        {filter.until !== "" && <LinkButton href={urlOf({ ...filter, page: 1, until: "" })}>Newest</LinkButton>}
        {!hasNext && searchedTo !== null && <SearchFurther filter={filter} searchedTo={searchedTo} />}
        {filter.page > 1 ? (
          <LinkButton href={urlOf({ ...filter, page: filter.page - 1, until })}>Previous</LinkButton>
        ) : (
          <Button disabled>Previous</Button>
        )}
        {hasNext ? (
          <LinkButton href={urlOf({ ...filter, page: filter.page + 1, until })}>Next</LinkButton>
        ) : (
          <Button disabled>Next</Button>
        )}
      </div>
    </nav>
  );
}
