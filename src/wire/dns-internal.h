/* dns-internal - numbers of the DNS message format that reading and writing share. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DNS_CLASS_IN 1
#define DNS_LABEL_MAX 63
#define DNS_WIRE_NAME_MAX 255

/* First byte of the flags: QR 1, opcode 4, AA 1, TC 1, RD 1. Second: RA 1, Z 1, AD 1, CD 1, rcode 4. */
#define DNS_FLAG_QR 0x80
#define DNS_FLAG_OPCODE 0x78
#define DNS_FLAG_TC 0x02
#define DNS_FLAG_RD 0x01
#define DNS_FLAG_RA 0x80
#define DNS_FLAG_CD 0x10

/* OPT as a record: root name, type, payload, extended rcode, version, flags, data length. */
#define DNS_OPT_LEN 11
#define DNS_OPT_FLAG_DO 0x8000
#define DNS_OPTION_EXTENDED_ERROR 15
