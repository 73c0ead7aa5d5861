#pragma once
/*
 * Attachments: files that a person has given a conversation for its agent. They are in the folder
 * files/ of it, each under its id and name, so that nothing else has to be kept of them. What they
 * are is found in their first bytes, never in their names.
 *
 * These functions block, for as long as the disk takes.
 */
#include <stdint.h>

#include "base/buf.h"
#include "base/id.h"

enum {
	ATTACHMENT_MAX = 4 << 20, /* bytes of one */
	ATTACHMENTS_MAX = 64, /* of a conversation */
	ATTACHMENTS_BYTES_MAX = 64 << 20,
	ATTACHMENT_NAME_MAX = 120, /* bytes */
	ATTACHMENT_ID = 2 + 32,
};
#define ATTACHMENTS_FOLDER "files"

struct attachment {
	char id[ID_MAX]; /* "f-" and 32 hex digits */
	char name[ATTACHMENT_NAME_MAX + 1];
	const char *type; /* of an image that browsers and models know; else octet-stream */
	bool image;
	uint64_t size;
	int64_t added_ms;
};

/* Makes their folder, if it is not there, and opens it. folder: of the conversation. */
int attachments_folder(int folder, struct err *e) MUST_USE;

/* It is on the disk when this returns. ERR_INVALID: the name; ERR_TOO_LARGE; ERR_CONFLICT: there
 * are too many. */
int attachment_add(int folder, struct str name, struct str bytes, struct attachment *ret,
		   struct err *e) MUST_USE;

/* Fills at most ATTACHMENTS_MAX, the oldest first; gives their number. */
int attachments_list(int folder, struct attachment ret[ATTACHMENTS_MAX], struct err *e) MUST_USE;

/* ERR_PATH_NOT_FOUND: there is none of this id. to may be NULL: only what is known of it. */
int attachment_read(int folder, struct str id, struct attachment *ret, struct buf *to,
		    struct err *e) MUST_USE;
int attachment_remove(int folder, struct str id, struct err *e) MUST_USE;

/* Fills in type and image by the first bytes of a content. */
void attachment_sniff(struct str begin, struct attachment *ret);

/* The name of its file in the folder. */
void attachment_file(const struct attachment *a, char ret[256]);
