#!/usr/bin/env node
// Starts the command line.
import '../dist/ph/main.js'
