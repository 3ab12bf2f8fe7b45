export const tiers = ["free", "pro", "business", "enterprise"].map((value) => ({ value, text: value }));
