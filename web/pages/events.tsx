import { PageHead } from "../parts/page.tsx";

export function EventsPage() {
  return <PageHead title="Events" />;
}
