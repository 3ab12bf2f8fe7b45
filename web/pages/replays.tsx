import { PageHead } from "../parts/page.tsx";

export function ReplaysPage() {
  return <PageHead title="Replays" />;
}
