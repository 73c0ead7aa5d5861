#pragma once
/*
 * Whether a server could read an encrypted server name (ECH, RFC 9849).
 *
 * A browser sends the extension to every server, by default with a dummy in it (GREASE), and nobody
 * but the server can tell it from a real one. With a real one a program could reach any name that
 * the server of a granted one also serves. But a server that reads it must say so to those that it
 * can't read: it sends its keys as retry_configs in EncryptedExtensions. So the server is asked
 * once, by a handshake with a dummy of our own. Servers that don't answer it ignore the extension,
 * and the name in the clear is the one that counts.
 */
#include <stdbool.h>

struct dial_to;
struct ech;
struct egress;
struct sandbox;

/* hides: it could read it, or did not tell. */
typedef void ech_fn(void *owner, bool hides);

/* Asks the host that a flow is connected to. What is known is kept for some minutes. The callback
 * comes once, never within this. NULL: out of memory. */
struct ech *ech_start(struct sandbox *s, const struct dial_to *to, const char *name,
		      ech_fn *on_done, void *owner);
/* Whether it needs a connection of its own, since the answer is not known. */
bool ech_dials(const struct ech *e);
void ech_cancel(struct ech *e); /* NULL-safe; no callback follows */
