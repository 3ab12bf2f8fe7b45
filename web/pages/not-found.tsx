import { Brand } from "../parts/brand.tsx";
import { LinkButton } from "../parts/button.tsx";
import { PageHead } from "../parts/page.tsx";
import { Empty } from "../parts/states.tsx";

/** A path that the router does not know, such as a mistyped link. */
export function NotFoundPage() {
  return (
    <>
      <PageHead title="Nothing here" />
      <Empty sentence="This page does not exist.">
        <LinkButton kind="primary" href="/">
          Go to the overview
        </LinkButton>
      </Empty>
    </>
  );
}

/** The same when nobody is signed in. */
export function NowherePage() {
  return (
    <main class="front narrow">
      <Brand />
      <PageHead title="Nothing here" />
      <Empty sentence="This page does not exist.">
        <LinkButton kind="primary" href="/">
          Go to the start page
        </LinkButton>
      </Empty>
    </main>
  );
}
