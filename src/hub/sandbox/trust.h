#pragma once
/*
 * Files by which programs of a sandbox trust its own authority: the host's trusted certificates
 * and the authority's, as PEM and as a PKCS #12 store for Java. Each stands where Debian has it,
 * so that most programs need no setting; those that bring their own list are told by variables.
 */
#include "base/buf.h"

/* Where they are inside. */
#define TRUST_PEM "/etc/ssl/certs/ca-certificates.crt"
#define TRUST_P12 "/etc/ssl/certs/java/cacerts"

enum { TRUST_MAX = 8 << 20 };

/* Appends the host's trusted certificates, and then those of the PEM. */
int trust_pem(struct str ca, struct buf *to, struct err *e) MUST_USE;

/* Appends a store (RFC 7292) with all certificates of the PEM. It has no password, since it holds
 * nothing secret. */
int trust_p12(struct str pem, struct buf *to, struct err *e) MUST_USE;
