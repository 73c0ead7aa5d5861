#pragma once
#include "guard/audit/record.h"

/* audit.list: in their order; next is what `after` is for those that follow. */
struct audit_page {
	struct {
		struct audit_record *p;
		size_t n;
	} records;
	uint64_t next;
};

/* audit.get. */
struct audit_view {
	struct audit_record record, receipt;
};
