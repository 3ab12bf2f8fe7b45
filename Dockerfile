# The executable of a release in an image that has nothing else: no shell, no package manager, no root.
#
#   bun run release linux-x64 && docker build -t postrider .
#   bun run release && docker buildx build --platform linux/amd64,linux/arm64 …     needs no emulation
#
# docs/install.md says how it is run.
FROM --platform=$BUILDPLATFORM debian:bookworm-slim AS files
ARG TARGETARCH
WORKDIR /build
# The C library of the target's architecture, as it is today; nothing of it is run here.
RUN dpkg --add-architecture "$TARGETARCH" && apt-get update \
 && apt-get download "libc6:$TARGETARCH" && dpkg-deb -x libc6_*.deb libc
COPY release/image.sh dist/postrider-linux-* ./
RUN case $TARGETARCH in amd64) name=x64 ;; *) name=$TARGETARCH ;; esac \
 && sh image.sh /image "$TARGETARCH" "postrider-linux-$name" libc

FROM scratch
COPY --from=files /image /
USER 65532:65532
WORKDIR /data
ENV POSTRIDER_DATA_DIR=/data POSTRIDER_HOST=0.0.0.0
VOLUME /data
EXPOSE 8080
# An upgrade of a large database takes its time before the server listens.
HEALTHCHECK --interval=10s --timeout=5s --start-period=5m --retries=3 \
  CMD ["/usr/local/bin/postrider", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/postrider"]
CMD ["serve"]
