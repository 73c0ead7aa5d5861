#pragma once
/* Where programs are: for what Holt starts on the host, and in sandboxes. */
#define PROGRAMS_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/* The last one has programs that the host has under other names: box/archive/template_host.c */
#define PROGRAMS_PATH_INSIDE PROGRAMS_PATH ":/opt/holt/bin"
