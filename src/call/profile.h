#pragma once
/* Profiles of the operator's file that requests name (docs/policy.md). A profile narrows and fills
 * in what its caller asks for; all else that denies a call still does. */
#include "call/call.h"
#include "config/config.h"
#include "hub/sandbox/sandbox.h"

#define PROFILES_ROW(S)                                                                            \
	FIELD(S, profiles, .max = CONFIG_PROFILES_ASKED, .item_min = 1,                            \
	      .item_max = CONFIG_NAME_MAX,                                                         \
	      .doc = "Names of profiles of the operator's file; several are combined.")

/* Fills in those of the call's door (op_start.profiles) where its request names none. ERR_DENIED:
 * it names others than its door has. */
int profile_names(const struct call *c, struct field_strs *names, struct err *e) MUST_USE;

/* Those that hold, joined; *ret_any false: none does. The operator, and a file without profiles,
 * need none; another caller who names none has the default. names: of the request, as for
 * profile_names(). ERR_DENIED: not for this caller. */
int profile_of(struct call *c, const struct field_strs *names, struct config_profile *ret,
	       bool *ret_any, struct err *e) MUST_USE;

/* The same for what a door lists to who asks through it as an agent. who may be NULL. */
int profile_of_agent(const struct ops *ops, const struct principal *who,
		     const struct field_strs *names, struct arena *a, struct config_profile *ret,
		     bool *ret_any, struct err *e) MUST_USE;

/* What a sandbox's profiles are (struct hub_modules): a JSON array of names, or this where the
 * operator has given it modules without any. */
#define SANDBOX_UNPROFILED "*"

/* *value, where it was not said (has), becomes the limit; else ERR_DENIED where it is larger. */
int profile_limit(const char *name, bool has_limit, uint32_t limit, bool has, uint32_t *value,
		  struct err *e) MUST_USE;

/* Whether its servers have this one: else ERR_DENIED. */
int profile_check_server(const struct config_profile *p, struct str server, struct err *e) MUST_USE;

/* The same by those that hold for a call whose request names none. */
int profile_check_call(struct call *c, struct str server, struct err *e) MUST_USE;

/* Whether an agent's call may run or change anything in a sandbox with these modules, whose
 * programs call them: not if the operator gave them without profiles, and those that hold for the
 * call are narrower. */
int profile_check_sandbox(struct call *c, const struct hub_modules *m, struct err *e) MUST_USE;

/* Those of the call's door as a text, by which what is made for them is found again, and from it;
 * text is borrowed by *ret. */
enum { PROFILE_TEXT_MAX = CONFIG_PROFILES_ASKED * (4 * CONFIG_NAME_MAX + 1) };
void profile_text(const struct call *c, char ret[PROFILE_TEXT_MAX + 1]);
int profile_from_text(const char *text, struct arena *a, struct field_strs *ret,
		      struct err *e) MUST_USE;
