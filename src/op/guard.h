#pragma once
/* What operations use of the gate: its parts, each NULL where there is none. They live as long as
 * the hooks. */
struct approvals;
struct audit;
struct keys;
struct policy;
struct secrets;

struct guard {
	struct keys *keys; /* guard/key */
	struct policy *policy; /* guard/policy */
	struct approvals *approvals; /* guard/approval */
	struct secrets *secrets; /* guard/secret */
	struct audit *audit; /* guard/audit */
};
