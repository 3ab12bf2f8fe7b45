import { sells } from "../session/server.ts";

/** A link to the account's limits, for places where a higher plan may help. */
export const PlanLink = () => <a href="/plan">{sells() ? "See the plan" : "See your limits"}</a>;
