/**
 * What a new password needs, to be shown while it is typed. The server decides (`src/accounts/password.ts`); a test keeps
 * the two in sync.
 */
export const passwordRules: readonly { text: string; holds(password: string): boolean }[] = [
  { text: "8 characters", holds: (password) => [...password].length >= 8 },
  { text: "an uppercase letter", holds: (password) => /\p{Lu}/u.test(password) },
  { text: "a lowercase letter", holds: (password) => /\p{Ll}/u.test(password) },
  { text: "a digit", holds: (password) => /[0-9]/.test(password) },
  { text: "one of @ # $ % ^ & + = !", holds: (password) => /[@#$%^&+=!]/.test(password) },
];

export const isGoodPassword = (password: string): boolean => passwordRules.every(({ holds }) => holds(password));
