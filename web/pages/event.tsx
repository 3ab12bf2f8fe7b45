import { PageHead } from "../parts/page.tsx";

export function EventPage() {
  return <PageHead title="Event" />;
}
