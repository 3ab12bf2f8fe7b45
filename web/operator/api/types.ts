/** What the operator's endpoints return, as far as a screen shows it. */

export interface Status {
  readonly version: string;
  readonly commit: string;
  readonly started_at: string;
  readonly now: string;
  readonly paused: readonly string[];
  readonly queue: {
    readonly waiting: number;
    readonly oldest_due_seconds: number | null;
    readonly in_flight: number;
  } | null;
  readonly since_start: Counts;
  readonly storage: {
    readonly database_bytes: number;
    readonly log_bytes: number;
    readonly disk_free_bytes: number;
    readonly disk_floor_bytes: number;
  };
  readonly memory_bytes: number;
  readonly open_streams: number;
}

export interface Counts {
  readonly events: number;
  readonly delivered: number;
  readonly retried: number;
  readonly failed: number;
}

export interface FailingWebhook {
  readonly tenant_id: string;
  readonly tenant_name: string;
  readonly webhook_id: string;
  readonly url: string;
  readonly name: string;
  readonly failing_since: string;
  readonly disabled_at: string | null;
}

export interface Account {
  readonly tenant_id: string;
  readonly tenant_name: string;
  readonly email: string;
  readonly tier: string;
  readonly enforced_tier: string | null;
  readonly status: string;
  readonly suspended_by: readonly string[];
  readonly created_at: string;
}

export type LimitName =
  | "events_per_month"
  | "webhooks"
  | "retention_days"
  | "retention_payloads_days"
  | "storage_bytes";

export interface AccountDetail extends Account {
  readonly max_events_per_month: number;
  readonly max_webhooks: number;
  readonly events_this_month: number;
  /** Null while a large account is measured for the first time. */
  readonly storage_bytes: number | null;
  readonly webhooks: number;
  readonly limits: Readonly<Record<LimitName, number | null>>;
  readonly refused_this_month: { readonly quota: number; readonly inactive: number; readonly invalid: number };
}

export interface BackupOutcome {
  readonly kind: "backup" | "verify";
  readonly name: string | null;
  readonly at: string;
  readonly took_ms: number;
  readonly bytes: number | null;
  readonly error: string | null;
}

export interface Backups {
  readonly place: string | null;
  readonly schedule: string | null;
  readonly keep: number | null;
  readonly next_at: string | null;
  readonly under_way: "backup" | "verify" | null;
  /** Of either kind. */
  readonly latest: BackupOutcome | null;
  readonly latest_backup: BackupOutcome | null;
  readonly backups: readonly {
    readonly name: string;
    readonly bytes: number;
    readonly created_at: string;
    readonly verified: boolean | null;
  }[];
}

export interface AuditEntry {
  readonly tenant_id: string | null;
  readonly action: string;
  readonly by: string;
  readonly via: string | null;
  readonly address: string | null;
  readonly times: number;
  readonly at: string;
  readonly last_at: string;
  readonly detail: Readonly<Record<string, string | number | boolean | readonly string[]>>;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  readonly total: number;
  readonly total_is_exact: boolean;
}

export interface SettingInForce {
  readonly setting: string;
  readonly value: string | null;
  readonly source: string;
  readonly by: string | null;
  readonly file: string | null;
  readonly note: string | null;
}

export interface Charge {
  readonly tenant_id: string | null;
  readonly tenant_name: string | null;
  readonly reference: string;
  readonly kind: string;
  readonly state: string;
  readonly amount_kobo: number;
  readonly created_at: string;
  readonly settled_at: string | null;
  readonly reason: string | null;
  readonly refund: string | null;
}
