#pragma once
/* Between the files of the registry. */
#include "base/buf.h"
#include "store/store.h"

/* Statements, defined in schema.c. The number of a parameter is its position in the call. */
enum statement {
	SANDBOX_ADD,
	SANDBOX_CHANGE,
	SANDBOX_DROP,
	SANDBOX_ALL,
	SANDBOX_LAST,
	JOB_PUT,
	JOB_DROP,
	JOB_ALL,
	JOB_CLEAR,
	SPEC_OF,
	FORGOTTEN,
	FORGOTTEN_SET,
	SNAPSHOT_ADD,
	SNAPSHOT_DROP,
	SNAPSHOT_ALL,
	SNAPSHOT_LAST,
	EVENT_ADD,
	EVENT_TRIM,
	EVENT_AFTER,
	EVENT_AFTER_OF,
	EVENT_KEPT,
	KEY_FIND,
	KEY_PUT,
	KEY_DROP,
	KEY_DROP_OLDEST,
	KEY_EXPIRE,
	KEY_COUNT,
	API_KEY_PUT,
	API_KEY_USED,
	API_KEY_DROP,
	API_KEY_ALL,
	API_KEY_ENDED,
	APPROVAL_PUT,
	APPROVAL_DROP,
	APPROVAL_ALL,
	QUESTION_PUT,
	QUESTION_DROP,
	QUESTION_ALL,
	WORKSPACE_PUT,
	WORKSPACE_DROP,
	WORKSPACE_ALL,
	WORKSPACE_LAST,
	REVISION_ADD,
	REVISION_DROP,
	REVISION_ALL,
	HISTORY_ADD,
	HISTORY_COPY,
	HISTORY_BEFORE,
	HISTORY_FIND,
	HISTORY_FORGET,
	REVISION_AFTER,
	MODULE_PUT,
	MODULE_LET_GO,
	MODULE_ALL,
	MODULE_KEY,
	CODE_PUT,
	CODE_DROP,
	CODE_DROP_OWNER,
	CODE_OF,
	CODE_OWNERS,
	STATEMENTS
};

extern const struct db_schema store_schema;

/* What each kind of row has, by its struct of store.h: the one place where columns are named. */
extern const struct db_row sandbox_row, job_row, snapshot_row, event_row, api_key_row, approval_row,
	question_row, workspace_row, revision_row, module_row, code_row;

struct store {
	struct db *db;
	/* Totals of the keys. A failed transaction may make them inaccurate; they are then
	 * counted again. */
	bool counted;
	int64_t n_keys, key_bytes;
	struct buf found; /* what the last store_key_find() lends */
};

enum { SPEC_MAX = 64 << 20 };

/* The number that a statement selects; without parameters. */
int store_number(struct store *s, enum statement which, uint64_t *ret, struct err *e) MUST_USE;
/* The spec of a sandbox's row, if *spec is STR_NONE; it is kept in `to`. */
int store_spec_of(struct store *s, uint64_t seq, struct str *spec, struct buf *to,
		  struct err *e) MUST_USE;
