# The image of longshort-server: docs/operations/container.md says how to build and run it. Targets:
#   cpu   (default) the server and the client
#   demo  the same with the demo models, open to whoever reaches it
#   cuda  the same with workers for GPUs, and LibTorch's GPU part. No test builds it: docs/gpu.md says what is proved

# Debian 12. One that mmdebstrap has made will do as well.
ARG BASE=docker.io/library/debian:12-slim

FROM ${BASE} AS build
# The compiler cache finds only what was compiled with this locale. It is the builder's own, or a volume that is mounted
# elsewhere.
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
# LibTorch's wheel, and what its GPU part needs.
ARG LIBTORCH=deploy/requirements-cuda.txt
ENV CUDA_HOME=/longshort/.venv/lib/python3.11/site-packages/nvidia/cu13
# The wheels lay their libraries where nvcc and CMake do not look for them.
RUN deploy/install --build="${LIBTORCH}" && \
    ln -s lib "${CUDA_HOME}/lib64" && \
    ln -s libcudart.so.13 "${CUDA_HOME}/lib/libcudart.so"
RUN --mount=type=cache,target=/root/.cache/ccache \
    cmake --preset release -DLONGSHORT_CUDA=on && \
    cmake --build --preset serve --parallel "$(nproc)" && \
    cmake --install build/release --component serve --strip --prefix /installed/usr/local && \
    deploy/collect-libraries /installed/usr/local /installed/var/lib/dpkg/status.d

# Debian's packages would bring what no program here loads: OpenCV's need Mesa and LLVM.
FROM ${BASE} AS run
# The authorities that gRPC trusts where a client is told of none.
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
# Of the image format of Docker; that of OCI has none.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["longshort", "ready", "--timeout=4s"]
# Beyond loopback the server asks for --tls-certificate or --insecure: who runs the image decides.
ENTRYPOINT ["longshort-server", "--model-repository=/models", "--listen=0.0.0.0:8500", "--http-listen=0.0.0.0:8501"]

FROM run AS cuda
COPY --from=build-cuda /installed /

FROM run AS demo
COPY --from=build /installed /
COPY models/zoo /models
CMD ["--insecure"]

FROM run AS cpu
COPY --from=build /installed /
