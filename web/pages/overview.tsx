import { PageHead } from "../parts/page.tsx";

export function OverviewPage() {
  return <PageHead title="Overview" />;
}
