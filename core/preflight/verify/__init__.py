"""The conformance kit: any plugin, in any language, held against the protocol with raw frames."""
