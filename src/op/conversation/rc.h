#pragma once
/*
 * The file .holtrc of a workspace, or a .mittorc as Mitto has it: which attributes conversations
 * may have. Without I/O; the text is a stranger's. Of YAML it understands what such files have,
 * block mappings and lists with plain or quoted values on one line, and JSON as well:
 *
 *	conversations:
 *	  user_data:
 *	    - name: ticket
 *	      description: What it is about
 *	      type: url
 *
 * "metadata" may stand in place of "conversations".
 */
#include "base/arena.h"

enum { RC_BYTES_MAX = 64 << 10, RC_FIELDS_MAX = 64 };

enum rc_type { RC_STRING, RC_URL, RC_FILENAME };

struct rc_field {
	struct str name, description; /* borrowed from the text, or in the arena */
	enum rc_type type; /* an unknown one is RC_STRING */
};

/* Gives how many fields; -1 with ERR_INVALID and the line. */
int rc_read(struct str text, struct rc_field ret[RC_FIELDS_MAX], struct arena *a,
	    struct err *e) MUST_USE;
