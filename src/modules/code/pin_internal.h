#pragma once
#include "json/document/write.h"
#include "modules/code/pin.h"

enum { PIN_MEMBERS = 7 };

/* The members of a tool that count. */
extern const struct str pin_members[PIN_MEMBERS];

/* Writes a value canonically; the key is that of the member it is, if it is one. */
void pin_write(struct json_writer *w, struct str key, const struct json_val *v);

/* The members of an object, by name. malloc'd; n is json_len(v). NULL: there are none, or with
 * ERR_LIMIT no memory. */
struct pin_member {
	struct str key;
	const struct json_val *val;
};
struct pin_member *pin_sorted(const struct json_val *v, struct err *e);
