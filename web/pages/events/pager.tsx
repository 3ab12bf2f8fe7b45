import { count } from "../../format/number.ts";
import { exactTime } from "../../format/time.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { type Filter, pageSize, urlOf } from "./filter.ts";
import type { Listed } from "./record.ts";

/** Where in the list one is, and the pages before and after. They end at one time, so that they do not shift. */
export function Pager({ filter, listed }: { filter: Filter; listed: Listed }) {
  const { records, total, totalIsExact } = listed;
  const before = (filter.page - 1) * pageSize;
  const end = before + records.length;
  const hasNext = records.length === pageSize && (!totalIsExact || end < total);
  const until = filter.until || listed.held;
  return (
    <nav class="pager" aria-label="Pages">
      <p class="soft">
        {records.length > 0 && `${count(before + 1)}–${count(end)} of `}
        {totalIsExact ? count(total) : `more than ${count(total)}`}
        {filter.until !== "" && (
          <>
            {" "}
            <span class="nowrap">up to {exactTime(Date.parse(filter.until))}</span>
          </>
        )}
      </p>
      <div class="buttons">
        {filter.until !== "" && <LinkButton href={urlOf({ ...filter, page: 1, until: "" })}>Newest</LinkButton>}
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
