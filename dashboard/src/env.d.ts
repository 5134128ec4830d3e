// The types of imports that are not code, as the bundler provides them.
/// <reference types="vite/client" />
