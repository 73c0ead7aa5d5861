#pragma once
/* Profiles of the operator's file that requests name (docs/policy.md). A profile narrows and fills
 * in what its caller asks for; all else that denies a call still does. */
#include "config/config.h"
#include "op/call.h"

#define PROFILES_ROW(S)                                                                            \
	FIELD(S, profiles, .max = CONFIG_PROFILES_ASKED, .item_min = 1,                            \
	      .item_max = CONFIG_NAME_MAX,                                                         \
	      .doc = "Profiles of the operator's file, joined: see there.")

/* Those that hold, joined; *ret_any false: none does. The operator, and a file without profiles,
 * need none; another caller who names none has the default. ERR_DENIED: not for this caller. */
int profile_of(struct call *c, const struct field_strs *names, struct config_profile *ret,
	       bool *ret_any, struct err *e) MUST_USE;

/* *value, where it was not said (has), becomes the limit; else ERR_DENIED where it is larger. */
int profile_limit(const char *name, bool has_limit, uint32_t limit, bool has, uint32_t *value,
		  struct err *e) MUST_USE;

/* Whether its servers have this one: else ERR_DENIED. */
int profile_check_server(const struct config_profile *p, struct str server, struct err *e) MUST_USE;
