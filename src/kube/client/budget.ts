import { ApiError } from './api-error.ts';

/** The error's reason if a server has more than may be kept of it. */
export const OVER_BUDGET = 'OverBudget';

export interface BudgetOptions {
  /** Bytes, as {@link sizeOf} counts. */
  readonly most: number;
  /** What this is a part of. */
  readonly within?: Budget;
}

/** Bounds how much is kept of what others send, by several who keep it. */
export class Budget {
  readonly most: number;
  private readonly within: Budget | undefined;
  private taken = 0;

  constructor({ most, within }: BudgetOptions) {
    this.most = most;
    this.within = within;
  }

  get used(): number {
    return this.taken;
  }

  ration(): Ration {
    return new Ration(this);
  }

  /** Changes what is taken by so many bytes, if there is room. */
  change(bytes: number): boolean {
    if (bytes > 0 && this.taken + bytes > this.most) return false;
    if (this.within?.change(bytes) === false) return false;
    this.taken += bytes;
    return true;
  }
}

/** What one of them keeps. */
export class Ration {
  private readonly budget: Budget;
  private bytes = 0;

  constructor(budget: Budget) {
    this.budget = budget;
  }

  /** From now on, this much is kept. Throws an `ApiError`, and changes nothing, if there is no room. */
  set(bytes: number): void {
    if (!this.budget.change(bytes - this.bytes)) throw overBudget(this.budget.most);
    this.bytes = bytes;
  }

  /** What is kept already needs no room. */
  raise(bytes: number): void {
    if (bytes > this.bytes) this.set(bytes);
  }
}

function overBudget(most: number): ApiError {
  const message = `there are more objects than fit into ${Math.round(most / 1024 / 1024)} MiB`;
  return new ApiError(message, { code: 0, reason: OVER_BUDGET, retryable: true });
}

/** About how many bytes a value takes: plain JSON, nothing of it shared. */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return 16 + value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let size = 24;
  if (Array.isArray(value)) for (const item of value) size += sizeOf(item);
  else for (const [key, member] of Object.entries(value)) size += 8 + key.length + sizeOf(member);
  return size;
}
