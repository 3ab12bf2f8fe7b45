import type { ComponentChildren } from "preact";
import type { Loaded } from "../stream/load.ts";
import { Button } from "./button.tsx";

/**
 * The four states of anything read from the server: a placeholder in the shape of the content, what went wrong and a way
 * to retry if that can help, one sentence and the next step, and the content itself.
 */
export function Shown<T>({
  of,
  skeleton = <SkeletonRows rows={4} />,
  isEmpty,
  empty,
  children,
}: {
  of: Loaded<T>;
  skeleton?: ComponentChildren;
  isEmpty?: (data: T) => boolean;
  empty?: ComponentChildren;
  children(data: T): ComponentChildren;
}) {
  const { data, error } = of;
  if (data === undefined) return error ? <Trouble of={of} /> : <div aria-busy="true">{skeleton}</div>;
  return (
    <>
      {error && <Trouble of={of} />}
      {isEmpty?.(data) ? empty : children(data)}
    </>
  );
}

function Trouble({
  of: { error, reload, isLoading },
}: {
  of: Pick<Loaded<unknown>, "error" | "reload" | "isLoading">;
}) {
  // Asking again would not change the answer.
  const isFinal = error?.status === 403 || error?.status === 404;
  return (
    <div class={isFinal ? "nothing" : "trouble"} role="alert">
      <p>{error?.message}</p>
      {!isFinal && (
        <Button onClick={reload} busy={isLoading}>
          Try again
        </Button>
      )}
    </div>
  );
}

export function Empty({ sentence, children }: { sentence: ComponentChildren; children?: ComponentChildren }) {
  return (
    <div class="nothing">
      <p>{sentence}</p>
      {children}
    </div>
  );
}

export function SkeletonRows({ rows }: { rows: number }) {
  return (
    <ul class="rows">
      {Array.from({ length: rows }, (_, i) => (
        <li key={i} class="row">
          <Skeleton width="18%" />
          <Skeleton width="46%" />
          <Skeleton width="10%" />
        </li>
      ))}
    </ul>
  );
}

export const Skeleton = ({ width, height = "12px" }: { width: string; height?: string }) => (
  <span class="skeleton" style={{ width, height }} aria-hidden="true" />
);
