import { sells } from "../session/server.ts";

/** The way to the account's limits, where it may be that more can be had. */
export const PlanLink = () => <a href="/plan">{sells() ? "See the plan" : "See your limits"}</a>;
