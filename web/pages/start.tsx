import { PageHead } from "../parts/page.tsx";

export function StartPage() {
  return <PageHead title="Start" />;
}
