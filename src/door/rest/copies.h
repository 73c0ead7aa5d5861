#pragma once
/*
 * Several new sandboxes of one source, all or none: what forks and restores have in common. Their names are known
 * before they are made (door/rest/names.h).
 */
#include "door/rest/names.h"
#include "door/rest/view.h"

struct copies_wish {
	struct str id;
	bool has_count, has_ids;
	uint32_t count;
	struct field_strs ids;
};
/* Its members, as rows of the body's table. */
#define COPIES_ROWS(S, wish)                                                                       \
	FIELD_NAMED(S, wish.id, "id", .min = 1, .max = API_ID_MAX,                                 \
		    .doc = "Name of the one new sandbox. Absent: one is made."),                   \
		FIELD_NAMED(S, wish.count, "count", .min = 1, .max = API_NAMES_MAX,                \
			    .def = DEFAULT_INT(1), .has = FIELD_HAS(S, wish.has_count),            \
			    .doc = "How many, of one instant, all or none; with it the answer "    \
				   "has a list."),                                                 \
		FIELD_NAMED(S, wish.ids, "ids", .min = 1, .max = API_NAMES_MAX, .item_min = 1,     \
			    .item_max = API_ID_MAX, .has = FIELD_HAS(S, wish.has_ids),             \
			    .doc = "The names of all; with it the answer has a list.")

/* What is answered in place of the one sandbox. */
extern const struct field_table copies_table;

struct copies { /* its memory is the call's */
	struct call *call;
	uint64_t begun_ns;
	bool list;
	struct api_names names;
};

/* The names that are to be made. NULL: the call has ended, failed or answered as the first time. */
struct copies *copies_begin(struct call *c, const struct copies_wish *w,
			    const struct once_header *h);

/* They are made, or not: ends the call, which is that of arg. */
void copies_end(void *arg, struct life *const *made, size_t n, const struct err *err);
