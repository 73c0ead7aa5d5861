#pragma once
/* A certificate authority of one's own: a new key on P-256 and the certificate that it signs
 * itself. GnuTLS makes both. */
#include "base/buf.h"
#include "base/secret.h"

enum { AUTHORITY_PEM_MAX = 4096 /* bytes of each */ };

/* name: of the organization, for people. *ret_key: owned, the private key in PEM. Appends the
 * certificate in PEM. */
int authority_make(const char *name, struct secret **ret_key, struct buf *certificate,
		   struct err *e) MUST_USE;
