# The image of longshort-server: docs/operations/container.md says how to build and run it. Targets:
#   cpu   (default) the server and the client
#   demo  the same with the demo models, without authentication
#   cuda  the same with GPU support. No test builds it: docs/gpu.md says what is verified

# Debian 12; an image made by mmdebstrap also works.
ARG BASE=docker.io/library/debian:12-slim

FROM ${BASE} AS build
# ccache distinguishes locales, so all builds use this one. Its folder is the builder's cache, or a mounted volume.
ENV LANG=C.UTF-8
ARG CCACHE_DIR=/root/.cache/ccache
WORKDIR /longshort
COPY deploy/install deploy/steps.sh deploy/debian-packages.txt deploy/requirements.txt deploy/
RUN deploy/install --build
COPY . .
RUN --mount=type=cache,target=/root/.cache/ccache \
    cmake --preset release && \
    cmake --build --preset serve --parallel "$(nproc)" && \
    cmake --install build/release --component serve --strip --prefix /installed/usr/local && \
    deploy/collect-libraries /installed/usr/local /installed/var/lib/dpkg/status.d

FROM build AS build-cuda
# The requirements of LibTorch with GPU support.
ARG LIBTORCH=deploy/requirements-cuda.txt
ENV CUDA_HOME=/longshort/.venv/lib/python3.11/site-packages/nvidia/cu13
RUN deploy/install --build="${LIBTORCH}"
# Machine code for A100 (and PTX for later chips), H100, B200, and GeForce and RTX of generation 50.
RUN --mount=type=cache,target=/root/.cache/ccache \
    cmake --preset release -DLONGSHORT_CUDA=on "-DCMAKE_CUDA_ARCHITECTURES=80;90a-real;100-real;120-real" && \
    cmake --build --preset serve --parallel "$(nproc)" && \
    cmake --install build/release --component serve --strip --prefix /installed/usr/local && \
    deploy/collect-libraries /installed/usr/local /installed/var/lib/dpkg/status.d

# Copies libraries instead of installing Debian's packages, whose dependencies are much larger.
FROM ${BASE} AS run
# The CAs that gRPC trusts by default.
COPY --from=build /usr/share/grpc/roots.pem /usr/share/grpc/
WORKDIR /models
WORKDIR /
ARG VERSION=0.1.0
ARG REVISION
LABEL org.opencontainers.image.title="longshort-server" \
      org.opencontainers.image.description="Serves Transformer-LS models over gRPC" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
USER 65532:65532
EXPOSE 8500 8501
STOPSIGNAL SIGTERM
# Only Docker's image format supports HEALTHCHECK; OCI's ignores it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["longshort", "ready", "--timeout=4s"]
# Beyond loopback the server requires --tls-certificate or --insecure; the user of the image chooses.
ENTRYPOINT ["longshort-server", "--model-repository=/models", "--listen=0.0.0.0:8500", "--http-listen=0.0.0.0:8501"]

FROM run AS cuda
COPY --from=build-cuda /installed /

FROM run AS demo
COPY --from=build /installed /
COPY models/zoo /models
CMD ["--insecure"]

FROM run AS cpu
COPY --from=build /installed /
