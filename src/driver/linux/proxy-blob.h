/* The proxy program as bytes, made by the build from src/proxy/. */
#pragma once

extern const unsigned char cordon_proxy_blob[];
extern const unsigned int cordon_proxy_blob_size;
