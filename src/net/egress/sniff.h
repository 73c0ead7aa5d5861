#pragma once
/* Tells from a client's first bytes which protocol it speaks. Pure. */
#include "base/str.h"

enum sniff {
	SNIFF_MORE, /* it may still become HTTP */
	SNIFF_TLS,
	SNIFF_HTTP, /* the first line ends as a request's does; or it is longer than others are */
	SNIFF_RAW,
};

/* Empty lines and blanks before are passed over, as some servers do. */
enum sniff sniff(struct str bytes);
