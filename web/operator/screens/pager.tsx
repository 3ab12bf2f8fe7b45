import { count } from "../../format/number.ts";
import { Button } from "../../parts/button.tsx";

/** Which part of a list is shown, with links to the neighbouring parts. */
export function Pager({
  page,
  total,
  isExact = true,
  perPage: size,
  onTurn,
}: {
  page: number;
  total: number;
  /** False: there are more than `total`. */
  isExact?: boolean;
  perPage: number;
  onTurn(page: number): void;
}) {
  if (total <= size) return null;
  const last = Math.ceil(total / size) - 1;
  return (
    <nav class="buttons op-pager" aria-label="Pages">
      <Button disabled={page === 0} onClick={() => onTurn(page - 1)}>
        Newer
      </Button>
      <span class="soft">
        {count(page * size + 1)} to {count(Math.min(total, (page + 1) * size))} of {isExact ? "" : "more than "}
        {count(total)}
      </span>
      <Button disabled={page >= last} onClick={() => onTurn(page + 1)}>
        Older
      </Button>
    </nav>
  );
}
