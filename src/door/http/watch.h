#pragma once
/* Watches of a sandbox's files, whatever the form that changes have on the way to the client. */
#include "door/http/common.h"

/* Sends each change until the client goes away, the directory is gone or the sandbox ends. Ends the call. */
void watch_speak(struct call *c, struct sandbox *sb, struct str path, bool recursive,
		 void (*send)(struct call *c, const struct file_change *change));

/* How the kinds are called; by enum change_kind. */
extern const char *const watch_kind_names[CHANGE_KINDS];
