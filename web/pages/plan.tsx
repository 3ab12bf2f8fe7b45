import { PageHead } from "../parts/page.tsx";

export function PlanPage() {
  return <PageHead title="Plan" />;
}
