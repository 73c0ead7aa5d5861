#pragma once
/*
 * Trees of files between a sandbox and a client, as tar archives that nobody ever holds whole: who takes slowly
 * is waited for, on either side, and who goes away ends it.
 */
#include "api/common.h"

/* Sends the archive of a path piece by piece. The answer is a stream from the first piece on; a failure before that is
 * one of the request, and after it the stream has no end. Ends the call. */
void transfer_download(struct call *c, struct sandbox *sb, struct str path,
		       void (*send)(struct call *c, struct str bytes));

/* Unpacks the body of a route that streams, or bytes, which live as long as the call, in a directory; done ends
 * the call where it went well. */
void transfer_upload(struct call *c, struct sandbox *sb, struct str path, const struct str *bytes,
		     void (*done)(struct call *c));
