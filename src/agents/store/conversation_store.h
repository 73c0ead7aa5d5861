#pragma once
/*
 * All conversations of a data folder: one folder each, 0700, of the user alone.
 *
 *	.lock			held while they are open (flock)
 *	20261126-100000-1a2b3c4d/	metadata.json events.jsonl events.idx queue.json
 *	trash/			what was deleted, for a period
 *
 * Records are in memory; a change is on the disk before it is acknowledged. Functions that write
 * block for that. A conversation that can't be read is left as it is and told; it is no reason to
 * lose the others.
 */
#include "agents/store/events.h"
#include "agents/store/record.h"

struct conversation_store;
struct conversation_folder;

enum {
	CONVERSATION_ID = 8 + 1 + 6 + 1 + 8,
	CONVERSATIONS_MAX = 10000,
};

/* Called for each that can't be read, with its id and the cause. */
typedef void (*conversation_lost_fn)(void *data, const char *id, const struct err *why);

/* Makes the folder where it is missing. ERR_STORE_LOCKED: another process has it. */
struct conversation_store *conversation_store_open(const char *path, conversation_lost_fn on_lost,
						   void *data, struct err *e) MUST_USE;
void conversation_store_close(struct conversation_store *c); /* NULL-safe */
AUTO_DEFINE(conversation_store_close, struct conversation_store)

/* YYYYMMDD-HHMMSS-xxxxxxxx with digits and hex digits in lower case. */
bool conversation_id_valid(struct str id);

size_t conversation_store_count(const struct conversation_store *c);
/* By id, which is by age. NULL: there is none; borrowed until it is deleted. */
struct conversation_folder *conversation_store_at(const struct conversation_store *c, size_t i);
struct conversation_folder *conversation_store_find(const struct conversation_store *c,
						    struct str id);

/* Makes one. Its id, and when it was made, are filled in; the rest is copied.
 * ERR_LIMIT: CONVERSATIONS_MAX; ERR_NOT_FOUND: no such parent. */
struct conversation_folder *conversation_store_add(struct conversation_store *c,
						   const struct conversation_record *r,
						   struct err *e) MUST_USE;

const char *conversation_folder_id(const struct conversation_folder *v);
/* Borrowed until the next change. */
const struct conversation_record *conversation_folder_record(const struct conversation_folder *v);
int conversation_folder_fd(const struct conversation_folder *v); /* for queue.h; borrowed */

/* Replaces the record, which may borrow from the old one; session_id, owner and created_at stay,
 * updated_at becomes now. */
int conversation_folder_change(struct conversation_folder *v, const struct conversation_record *r,
			       struct err *e) MUST_USE;

/* Its events, opened at the first call. Borrowed until the next call for another conversation. */
struct events *conversation_folder_events(struct conversation_folder *v, struct err *e) MUST_USE;

/* Moves it to the trash. ERR_CONFLICT: it has children, which are deleted first. 1 with *e: it is
 * gone, and may be there again after a power cut. */
int conversation_folder_delete(struct conversation_folder *v, struct err *e) MUST_USE;

/* Takes it back. owner: whose alone; STR_NONE: anyone's. ERR_CONVERSATION_NOT_FOUND: no such one is
 * in the trash, and nothing was changed. */
struct conversation_folder *conversation_store_take_back(struct conversation_store *c,
							 struct str id, struct str owner,
							 struct err *e) MUST_USE;

/* The owner of one in the trash; the caller frees it. NULL: none is there, or it can't be read. */
char *conversation_store_trashed_owner(struct conversation_store *c, struct str id);

/* Removes what has been in the trash for longer than this for ever. The number of those. */
int conversation_store_empty_trash(struct conversation_store *c, int64_t seconds,
				   struct err *e) MUST_USE;
