/* The proxy program as bytes, made by the build from src/proxy/. */
#pragma once

extern const unsigned char cordon_proxy_blob[];
extern const unsigned int cordon_proxy_blob_size;

/* The same of src/gateway/. */
extern const unsigned char cordon_gateway_blob[];
extern const unsigned int cordon_gateway_blob_size;
