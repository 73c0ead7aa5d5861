#pragma once
/* Archives between the hub and files of this machine; "-" is standard output or input. */
#include "cli/link/link.h"

/* Writes what a GET of the path answers. The file has its name when all is in it. digest: SHA-256
 * that it must have, or STR_NONE; ERR_SNAPSHOT: it has not. */
int hub_link_save(struct hub_link *l, const char *path, const char *to, struct str digest,
		  struct err *e) MUST_USE;

/* A POST of the descriptor's bytes; the answer as in hub_link_ask(). */
int hub_link_send_file(struct hub_link *l, const char *path, int fd, struct json_doc **ret,
		       struct err *e) MUST_USE;
