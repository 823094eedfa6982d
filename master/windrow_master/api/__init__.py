"""The Master's faces: HTTP for people and programs, gRPC for Accesses, files for the console."""
