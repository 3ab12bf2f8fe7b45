import { PageHead } from "../parts/page.tsx";

export function SignUpPage() {
  return <PageHead title="Create an account" />;
}
